import { X509Certificate } from 'node:crypto';

/** The most certificates that a provider has: one that signs, and those that follow it. */
export const MAX_CERTIFICATES = 10;
const BLOCK = /-----BEGIN CERTIFICATE-----[\s\S]*?-----END CERTIFICATE-----/g;

/** A text that is no list of certificates; the message says why, for whoever wrote it. */
export class NoCertificates extends Error {
  override readonly name = 'NoCertificates';
}

/**
 * The certificates of a text: one or several PEM blocks, or the bare base64 of one, as metadata of SAML has it. Each
 * has an end.
 * @throws NoCertificates
 */
export function readCertificates(text: string): X509Certificate[] {
  const blocks = certificateBlocks(text);
  if (blocks.length === 0) throw new NoCertificates('it has no PEM block (-----BEGIN CERTIFICATE----- …)');
  if (text.replace(BLOCK, '').includes('-----BEGIN'))
    throw new NoCertificates('it may have only PEM blocks of certificates, and never a private key');
  if (blocks.length > MAX_CERTIFICATES)
    throw new NoCertificates(`it may have at most ${MAX_CERTIFICATES} certificates, not ${blocks.length}`);
  return blocks.map((block, index) => read(block, blocks.length > 1 ? `block ${index + 1} of it` : 'it'));
}

/** The PEM blocks of a text that {@link readCertificates} accepts. */
export const certificateBlocks = (text: string): string[] => text.match(BLOCK) ?? bareBlock(text);

/** When the last of the certificates ends: until then some key is good. */
export const endOfCertificates = (certificates: readonly X509Certificate[]): Date =>
  new Date(Math.max(...certificates.map(({ validTo }) => Date.parse(validTo))));

function bareBlock(text: string): string[] {
  const base64 = text.replaceAll(/\s/g, '');
  if (!/^[A-Za-z0-9+/]{100,}={0,2}$/.test(base64)) return [];
  return [`-----BEGIN CERTIFICATE-----\n${base64}\n-----END CERTIFICATE-----`];
}

function read(block: string, what: string): X509Certificate {
  const certificate = parsed(block);
  if (!certificate) throw new NoCertificates(`${what} is not an X.509 certificate`);
  if (Number.isNaN(Date.parse(certificate.validTo))) throw new NoCertificates(`${what} has an end that is no time`);
  return certificate;
}

function parsed(block: string): X509Certificate | null {
  try {
    return new X509Certificate(block);
  } catch {
    // OpenSSL's words say nothing to whoever wrote the text
    return null;
  }
}
