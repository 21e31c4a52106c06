export * from './api-error.ts';
export { Client } from './client.ts';
export { bearer, type Credentials, Session, type SessionTokens, type TokenPair } from './credentials.ts';
export { errorOf } from './errors.ts';
export * from './generated/errors.ts';
export type { components, operations, paths } from './generated/rest.ts';
export * from './oauth.ts';
export type * from './types.ts';
