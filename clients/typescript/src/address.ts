/** An address below the service, which a proxy may serve below a path. */
export const addressAt = (url: string, path: string): string => url.replace(/\/+$/, '') + path;
