/** Where a file is being sent to. */
export interface UploadAddress {
  /** The id of the file, for `finishUpload`. */
  file: string;
  url: string;
  expiresAt: string;
  /** Whether `finishUpload` was asked for it, and no answer came. */
  isAsked?: boolean;
}

const PREFIX = 'console-upload ';

/** Whether the reader leaves: what is still on its way keeps nothing for later. */
let isOver = false;

const keys = (): string[] => Object.keys(sessionStorage).filter((key) => key.startsWith(PREFIX));

/** Whether an address has not ended. */
export const isGood = ({ expiresAt }: UploadAddress): boolean => Date.parse(expiresAt) > Date.now();

/** What a file of a user is known by. */
export const fingerprintOf = (userId: string, file: readonly (string | number)[]): string =>
  [userId, ...file].join(' ');

/**
 * The addresses of uploads that are not finished, so that a page that is loaded again goes on with them. They are in
 * the storage of this tab, end after a day, and take the bytes of one file, but read nothing (docs/decisions/0100).
 */
export const keptUploads = {
  of(fingerprint: string): UploadAddress | null {
    const text = sessionStorage.getItem(PREFIX + fingerprint);
    if (!text) return null;
    return JSON.parse(text) as UploadAddress;
  },
  keep(fingerprint: string, address: UploadAddress): void {
    if (!isOver) sessionStorage.setItem(PREFIX + fingerprint, JSON.stringify(address));
  },
  forget(fingerprint: string): void {
    sessionStorage.removeItem(PREFIX + fingerprint);
  },
  /** Forgets what others have left in this tab, who signed out at another page or in another tab. */
  forgetOthers(userId: string): void {
    for (const key of keys()) if (!key.startsWith(`${PREFIX}${userId} `)) sessionStorage.removeItem(key);
  },
  /** Leaves nothing to whoever signs in next. */
  forgetAll(): void {
    isOver = true;
    for (const key of keys()) sessionStorage.removeItem(key);
  },
};
