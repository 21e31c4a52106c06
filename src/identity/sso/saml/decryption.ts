// the library decrypts by itself; what was encrypted is looked at before, like any other message
import { SsoRefusal } from '../sso-refusal.ts';
import { contentOf, elementsAt } from './saml-xml.ts';

/** What elements that hide something may be, by where they are. */
const PLACES = {
  assertion: "/*/*[local-name()='EncryptedAssertion']",
  name: "/*/*[local-name()='EncryptedID']",
} as const;

/**
 * What is encrypted for the service, directly in a message whose form and algorithms were checked.
 * @param privateKey of the service (PEM)
 * @throws SsoRefusal
 */
export async function decrypted(xml: string, what: keyof typeof PLACES, privateKey: string): Promise<string> {
  try {
    const found = await elementsAt(xml, PLACES[what]);
    const [element] = found;
    if (element === undefined || found.length > 1) throw new SsoRefusal(`the ${what} is not directly in the message`);
    return await contentOf(element, privateKey);
  } catch (error) {
    // errors of the library may quote the message
    throw error instanceof SsoRefusal ? error : new SsoRefusal(`the ${what} cannot be decrypted`);
  }
}
