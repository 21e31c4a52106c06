export { Client, type ClientOptions } from './client.ts';
export { bearer, type Credentials, Session, type SessionTokens, type TokenPair } from './credentials.ts';
export {
  ApiError,
  AuthenticationFailedError,
  ConflictError,
  errorOf,
  ForbiddenError,
  type InputIssue,
  InvalidInputError,
  NotFoundError,
  PreconditionFailedError,
  RateLimitedError,
  UnavailableError,
} from './errors.ts';
export type { EventsOptions, ReceivedEvent, WorkspaceEvent } from './events.ts';
export type { Artifact, ByteRange, NamespacePlace, UploadOptions } from './files.ts';
export type { components, operations, paths } from './generated/rest.ts';
export type { Document } from './graphql.ts';
export {
  beginSignIn,
  type CodeRequest,
  type DeviceRequest,
  endGrant,
  finishSignIn,
  Grant,
  type GrantTokens,
  type OAuthApplication,
  signInWithDevice,
} from './oauth.ts';
export type { ItemOf, ListParameters, ListPath } from './pages.ts';
export type { Answer, Rest } from './rest.ts';
