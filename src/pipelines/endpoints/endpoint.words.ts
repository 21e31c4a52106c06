/** Pattern of the path of an endpoint, and its longest length. */
export const PATH = '(?:/[a-z0-9]+(?:[._-][a-z0-9]+)*)+';
export const MAX_PATH_LENGTH = 128;

/** HTTP methods of endpoints. */
export const methods = ['GET', 'PUT', 'PATCH', 'DELETE', 'POST'] as const;
