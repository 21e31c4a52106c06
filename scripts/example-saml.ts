// The SAML part of `npm run example:provider`: it signs in whatever address is entered, and asks for nothing else.
import type { ServerResponse } from 'node:http';
import { base64, type IdpKey, inflated, newIdpKey, responseXml, signXml } from '../test/identity/sso/saml-idp.ts';

/** A SAML identity provider below `/saml` of a server. */
export interface ExampleSaml {
  /** Answers `/saml/sign-in` and `/saml/certificate`. @throws Error for a request that is not the service's */
  answer(url: URL, response: ServerResponse): Promise<void>;
}

const escaped = (text: string) => text.replaceAll('&', '&amp;').replaceAll('"', '&quot;').replaceAll('<', '&lt;');
const hidden = (name: string, value: string) => `<input type="hidden" name="${name}" value="${escaped(value)}">\n`;

/**
 * A provider with a key of its own. Its entity identifier is `{base}/saml`.
 * @param acsUrl the only address that it sends answers to
 */
export function newExampleSaml(base: string, acsUrl: string): ExampleSaml {
  let key: IdpKey | null = null;
  const ownKey = () => {
    key ??= newIdpKey();
    return key;
  };
  const formFor = async (url: URL): Promise<string> => {
    const xml = await inflated(url.href);
    const found = (pattern: RegExp) => pattern.exec(xml)?.[1] ?? '';
    if (found(/AssertionConsumerServiceURL="([^"]+)"/) !== acsUrl)
      throw new Error('The request is of another service.');
    const given = (name: string) => url.searchParams.get(name) ?? '';
    const nameId = given('email');
    if (nameId === '')
      return `<form>${hidden('SAMLRequest', given('SAMLRequest'))}${hidden('RelayState', given('RelayState'))}
<input name="email" type="email" autofocus> <button>Sign in</button></form>`;
    const facts = {
      issuer: `${base}/saml`,
      acsUrl,
      audience: found(/:Issuer[^>]*>([^<]+)</),
      requestId: found(/ ID="([^"]+)"/),
      nameId,
    };
    const message = base64(signXml(responseXml(facts), 'assertion', ownKey()));
    return `<form method="post" action="${escaped(acsUrl)}">
${hidden('SAMLResponse', message)}${hidden('RelayState', given('RelayState'))}</form>
<script>document.forms[0].submit()</script>`;
  };
  return {
    answer: async (url, response) => {
      if (url.pathname === '/saml/certificate')
        response.writeHead(200, { 'content-type': 'application/x-pem-file' }).end(ownKey().certificate);
      else if (url.pathname === '/saml/sign-in')
        response.writeHead(200, { 'content-type': 'text/html' }).end(`<!doctype html>\n${await formFor(url)}\n`);
      else response.writeHead(404).end();
    },
  };
}
