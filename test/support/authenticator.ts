import { createHash, generateKeyPairSync, type KeyObject, randomBytes, sign } from 'node:crypto';
import { isoCBOR } from '@simplewebauthn/server/helpers';

/** What an authenticator does wrong on purpose. */
export interface Faults {
  origin?: string;
  rpId?: string;
  type?: string;
  nonce?: string;
  /** The bits of user presence (1), user verification (4) and an attested key (64). */
  flags?: number;
  count?: number;
  userHandle?: string | null;
  crossOrigin?: boolean;
  /** Signs with the key of another authenticator. */
  signWith?: Authenticator;
  /** The format of what the authenticator says about itself, and that. */
  attestation?: readonly [format: string, statement: Map<string, unknown>];
}

interface Options {
  challenge: string;
  user?: { id: string };
}

const PRESENT = 1;
const VERIFIED = 4;
const ATTESTED = 64;

const sha256 = (bytes: Uint8Array | string) => createHash('sha256').update(bytes).digest();

/** An authenticator in software, with one passkey: ES256, and a counter unless `counts` is false. */
export class Authenticator {
  readonly credentialId = randomBytes(32).toString('base64url');
  readonly #origin: string;
  readonly #privateKey: KeyObject;
  readonly #publicKey: KeyObject;
  readonly #counts: boolean;
  #count = 0;
  #userHandle: string | null = null;

  constructor(origin: string, { counts = true } = {}) {
    this.#origin = new URL(origin).origin;
    const pair = generateKeyPairSync('ec', { namedCurve: 'P-256' });
    this.#privateKey = pair.privateKey;
    this.#publicKey = pair.publicKey;
    this.#counts = counts;
  }

  /** Answers `navigator.credentials.create`. */
  create({ challenge, user }: Options, faults: Faults = {}): Record<string, unknown> {
    this.#userHandle = user?.id ?? null;
    const { x, y } = this.#publicKey.export({ format: 'jwk' });
    const key = new Map<number, number | Uint8Array>([
      [1, 2],
      [3, -7],
      [-1, 1],
      [-2, bytes(x!)],
      [-3, bytes(y!)],
    ]);
    const id = Buffer.from(this.credentialId, 'base64url');
    const length = Buffer.alloc(2);
    length.writeUInt16BE(id.length);
    const data = Buffer.concat([
      this.#head({ flags: PRESENT | VERIFIED | ATTESTED, ...faults }),
      Buffer.alloc(16),
      length,
      id,
      isoCBOR.encode(key),
    ]);
    const [format, statement] = faults.attestation ?? ['none', new Map()];
    const attestation = new Map<string, unknown>([
      ['fmt', format],
      ['attStmt', statement],
      ['authData', new Uint8Array(data)],
    ]);
    return this.#credential({
      clientDataJSON: this.#clientData(challenge, { type: 'webauthn.create', ...faults }),
      attestationObject: Buffer.from(isoCBOR.encode(attestation as never)).toString('base64url'),
      transports: ['internal'],
    });
  }

  /** Answers `navigator.credentials.get`. */
  get({ challenge }: Options, faults: Faults = {}): Record<string, unknown> {
    const data = this.#head({ flags: PRESENT | VERIFIED, ...faults });
    const clientDataJSON = this.#clientData(challenge, { type: 'webauthn.get', ...faults });
    const signed = Buffer.concat([data, sha256(Buffer.from(clientDataJSON, 'base64url'))]);
    return this.#credential({
      clientDataJSON,
      authenticatorData: data.toString('base64url'),
      signature: sign('sha256', signed, (faults.signWith ?? this).#privateKey).toString('base64url'),
      userHandle: faults.userHandle === undefined ? this.#userHandle : faults.userHandle,
    });
  }

  #head({ flags = 0, rpId = new URL(this.#origin).hostname, count }: Faults): Buffer {
    this.#count += this.#counts ? 1 : 0;
    const counter = Buffer.alloc(4);
    counter.writeUInt32BE(count ?? this.#count);
    return Buffer.concat([sha256(rpId), Buffer.from([flags]), counter]);
  }

  #clientData(
    challenge: string,
    { type, nonce = challenge, origin = this.#origin, crossOrigin = false }: Faults,
  ): string {
    return Buffer.from(JSON.stringify({ type, challenge: nonce, origin, crossOrigin })).toString('base64url');
  }

  #credential(response: Record<string, unknown>): Record<string, unknown> {
    const { credentialId: id } = this;
    return { id, rawId: id, type: 'public-key', clientExtensionResults: {}, response };
  }
}

const bytes = (base64url: string) => new Uint8Array(Buffer.from(base64url, 'base64url'));
