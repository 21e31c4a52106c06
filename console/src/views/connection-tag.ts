/** How the state of a connection looks. */
export const connectionTag = (status: string): string =>
  status === 'connected' ? 'tag ok' : status === 'not_connected' || status === 'pending' ? 'tag' : 'tag bad';
