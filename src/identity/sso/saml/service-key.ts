import { createPrivateKey, generateKeyPair, type KeyObject, X509Certificate } from 'node:crypto';
import { existsSync } from 'node:fs';
import path from 'node:path';
import { promisify } from 'node:util';
import { keyFile } from '../../../platform/keys/keys.ts';
import { selfSigned } from './self-signed.ts';

const YEARS = 20;

/** The key pair of the service towards SAML identity providers, as PEM. */
export interface ServiceKeyPair {
  privateKey: string;
  certificate: string;
}

/**
 * Signs requests, and decrypts assertions that are encrypted for this service. All nodes share it: it is in
 * `KEYS_DIR/saml.pem` (mode 0600), made when it is first needed.
 */
export class ServiceKey {
  readonly #file: string;
  #pair: Promise<ServiceKeyPair> | null = null;

  constructor({ keysDir }: { keysDir: string }) {
    this.#file = path.join(keysDir, 'saml.pem');
  }

  /** @throws Error naming the file, if it is damaged */
  pair(): Promise<ServiceKeyPair> {
    if (this.#pair) return this.#pair;
    const pair = this.#open();
    this.#pair = pair;
    pair.catch(() => {
      this.#pair = null; // the file may be mended
    });
    return pair;
  }

  async #open(): Promise<ServiceKeyPair> {
    const made = existsSync(this.#file) ? null : await newKey();
    const text = keyFile(this.#file, () => made ?? '');
    const [privateKey] = /-----BEGIN PRIVATE KEY-----[^-]+-----END PRIVATE KEY-----\n/.exec(text) ?? [];
    const [certificate] = /-----BEGIN CERTIFICATE-----[^-]+-----END CERTIFICATE-----\n/.exec(text) ?? [];
    if (privateKey === undefined || certificate === undefined || !belong(privateKey, certificate))
      throw new Error(
        `The file ${this.#file} has no private key with its certificate. Restore it from a backup, or remove it. ` +
          'The service then creates a new key, and every SAML identity provider has to read the metadata again.',
      );
    return { privateKey, certificate };
  }
}

function belong(privateKey: string, certificate: string): boolean {
  try {
    return new X509Certificate(certificate).checkPrivateKey(createPrivateKey(privateKey));
  } catch {
    return false; // this is the answer: one of both cannot be read
  }
}

async function newKey(): Promise<string> {
  const { privateKey } = await promisify(generateKeyPair)('rsa', { modulusLength: 3_072 });
  const from = new Date();
  const until = new Date(from);
  until.setUTCFullYear(from.getUTCFullYear() + YEARS);
  const pem = (privateKey as KeyObject).export({ type: 'pkcs8', format: 'pem' }) as string;
  return `${pem}${selfSigned(privateKey, 'SAML service provider', { from, until })}`;
}
