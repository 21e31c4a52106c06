import { SsoRefusal } from '../sso-refusal.ts';
import { objectOf } from './saml-xml.ts';

/**
 * XML that is not well-formed goes no further: the parser that checks signatures would only warn, on the console.
 * @throws SsoRefusal
 */
export async function checkForm(xml: string): Promise<void> {
  await objectOf(xml).catch(() => {
    throw new SsoRefusal('the message is not well-formed XML');
  });
}
