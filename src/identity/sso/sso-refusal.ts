/**
 * A message of a provider, or of somebody who claims to be one, that is not accepted. The reason is for the log of the
 * operator: it is a fixed sentence, without any part of the message. The sender gets the same answer for every reason.
 */
export class SsoRefusal extends Error {
  override readonly name = 'SsoRefusal';

  constructor(reason: string) {
    super(reason);
  }
}
