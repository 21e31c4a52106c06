import { createLogger } from '../../src/infra/logger.ts';

/** A logger that writes nothing. */
export const quietLogger = createLogger({ logLevel: 'silent' });
