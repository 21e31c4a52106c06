import type { CreateProviderMutationVariables } from '../generated/documents';

type SamlConfig = NonNullable<CreateProviderMutationVariables['input']['samlConfig']>;

const METADATA = 'urn:oasis:names:tc:SAML:2.0:metadata';
const SIGNATURE = 'http://www.w3.org/2000/09/xmldsig#';
const PROTOCOL = 'urn:oasis:names:tc:SAML:2.0:protocol';
const REDIRECT = 'urn:oasis:names:tc:SAML:2.0:bindings:HTTP-Redirect';

/**
 * The configuration that a text of metadata describes, as the service itself would read it from an address: of the one
 * identity provider in it. What is missing is left for the service to refuse.
 * @returns what is wrong with a text that is no such metadata
 */
export function samlConfigIn(text: string): SamlConfig | 'unreadable' | 'expired' {
  if (!isBalanced(text.trim())) return 'unreadable';
  const document = new DOMParser().parseFromString(text.trim(), 'application/xml');
  const isXml = document.getElementsByTagName('parsererror').length === 0;
  const described = isXml ? [...document.getElementsByTagNameNS(METADATA, 'IDPSSODescriptor')].filter(isSaml2) : [];
  const [descriptor] = described;
  const entity = descriptor?.parentElement;
  if (!descriptor || !entity || entity.localName !== 'EntityDescriptor' || described.length > 1) return 'unreadable';
  if (endsOf(descriptor).some((end) => !(end > Date.now()))) return 'expired';
  const sloUrl = addressOf(descriptor, 'SingleLogoutService');
  return {
    entityId: entity.getAttribute('entityID') ?? '',
    ssoUrl: addressOf(descriptor, 'SingleSignOnService') ?? '',
    certificate: certificatesOf(descriptor),
    signAuthnRequests: ['true', '1'].includes(descriptor.getAttribute('WantAuthnRequestsSigned') ?? ''),
    ...(sloUrl && { sloUrl }),
  };
}

const TAG = /<(\/?)([\w:.-]+)(?:\s+[\w:.-]+\s*=\s*(?:"[^"<]*"|'[^'<]*'))*\s*(\/?)>/g;
const BARE_AMPERSAND = /&(?!(?:amp|lt|gt|quot|apos|#\d+|#x[\da-f]+);)/i;

/**
 * Whether a text is one element whose parts all end, without definitions. Of others the browser makes a page with
 * styles of its own, which the policy of the console forbids.
 */
function isBalanced(text: string): boolean {
  const markup = text.replaceAll(/<\?.*?\?>|<!--.*?-->/gs, '').trim();
  if (!markup.startsWith('<') || !markup.endsWith('>')) return false;
  const open: string[] = [];
  let roots = 0;
  for (const [, isEnd, name = '', isEmpty] of markup.matchAll(TAG)) {
    if (!isEnd && open.length === 0) roots++;
    if (isEnd && open.pop() !== name) return false;
    if (!isEnd && !isEmpty) open.push(name);
  }
  return roots === 1 && open.length === 0 && !markup.replaceAll(TAG, '').includes('<') && !BARE_AMPERSAND.test(markup);
}

const isSaml2 = (descriptor: Element) =>
  (descriptor.getAttribute('protocolSupportEnumeration') ?? '').split(/\s+/).includes(PROTOCOL);

/** When a part of metadata, and what it is in, is no longer valid. */
function endsOf(descriptor: Element): number[] {
  const ends: number[] = [];
  for (let at: Element | null = descriptor; at; at = at.parentElement) {
    const end = at.getAttribute('validUntil');
    if (end !== null) ends.push(Date.parse(end));
  }
  return ends;
}

const childrenOf = (descriptor: Element, name: string) =>
  [...descriptor.children].filter((child) => child.namespaceURI === METADATA && child.localName === name);

/** Where browsers are redirected to. */
const addressOf = (descriptor: Element, name: string): string | null =>
  childrenOf(descriptor, name)
    .find((service) => service.getAttribute('Binding') === REDIRECT)
    ?.getAttribute('Location') ?? null;

/** The certificates of the keys that sign, each once, as PEM. */
function certificatesOf(descriptor: Element): string {
  const keys = childrenOf(descriptor, 'KeyDescriptor').filter(
    (key) => (key.getAttribute('use') ?? 'signing') === 'signing',
  );
  const texts = keys.flatMap((key) =>
    [...key.getElementsByTagNameNS(SIGNATURE, 'X509Certificate')].map((one) =>
      (one.textContent ?? '').replaceAll(/\s/g, ''),
    ),
  );
  return [...new Set(texts)]
    .map((one) => `-----BEGIN CERTIFICATE-----\n${one.replaceAll(/.{1,64}/g, '$&\n')}-----END CERTIFICATE-----`)
    .join('\n');
}
