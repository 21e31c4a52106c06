import { createLogger } from '../../src/platform/logger.ts';

/** A logger that writes nothing. */
export const quietLogger = createLogger({ logLevel: 'silent' });
