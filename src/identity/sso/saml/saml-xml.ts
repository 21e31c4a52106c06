// The one module that reaches past the public API of the library, which reads XML, decrypts, and returns what a
// signature is over only as parts of a whole sign-in. What was encrypted is looked at before the library acts on it,
// and sign-outs are verified as strictly as sign-ins.
import {
  decryptXml,
  getVerifiedXml,
  parseDomFromString,
  parseXml2JsFromString,
  xpath,
} from '@node-saml/node-saml/lib/xml.js';

/** XML as objects, with names without their prefixes. @throws Error for XML that is not well-formed */
export const objectOf = (xml: string): Promise<unknown> => parseXml2JsFromString(xml);

/** The elements at a path (XPath), each as XML. @throws Error for XML that is not well-formed */
export async function elementsAt(xml: string, path: string): Promise<string[]> {
  const found: { toString(): string }[] = xpath.selectElements(await parseDomFromString(xml), path);
  return found.map(String);
}

/** What is in an encrypted element. @param privateKey PEM @throws Error whose text may quote the element */
export const contentOf = (element: string, privateKey: string): Promise<string> => decryptXml(element, privateKey);

/**
 * The bytes that the signature of the root element is over.
 * @param certificates of the signer (PEM)
 * @returns `null` if it is not signed, or by somebody else, or is no XML that the reader of signatures accepts
 */
export async function verifiedXml(xml: string, certificates: string[]): Promise<string | null> {
  try {
    const { documentElement } = await parseDomFromString(xml);
    return documentElement && getVerifiedXml(xml, documentElement, certificates);
  } catch {
    return null; // its errors may quote the message, and mean that the signature is none
  }
}
