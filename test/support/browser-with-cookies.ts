const MAX_HOPS = 10;

/** A browser without pages, over real HTTP. Its cookies go to every port of this machine, as those of a browser do. */
export interface BrowserWithCookies {
  /** Sends a request and follows no redirect. */
  send(url: string, init?: RequestInit): Promise<Response>;
  /**
   * Opens an address and follows redirects.
   * @param until how the address begins that is not opened any more
   * @returns this address
   * @throws Error with the answer, if one on the way is no redirect
   */
  follow(url: string, until: string): Promise<URL>;
}

export function newBrowserWithCookies(): BrowserWithCookies {
  const cookies = new Map<string, string>();
  const send: BrowserWithCookies['send'] = async (url, init = {}) => {
    const headers = new Headers(init.headers);
    if (cookies.size > 0) headers.set('cookie', [...cookies].map(([name, value]) => `${name}=${value}`).join('; '));
    const answer = await fetch(url, { ...init, headers, redirect: 'manual' });
    for (const line of answer.headers.getSetCookie()) {
      const [, name = '', value = ''] = /^([^=]+)=([^;]*)/.exec(line) ?? [];
      cookies.set(name, value);
    }
    return answer;
  };
  return {
    send,
    async follow(url, until) {
      let at = url;
      for (let hops = 0; hops < MAX_HOPS && !at.startsWith(until); hops++) {
        const answer = await send(at);
        const location = answer.headers.get('location');
        if (!location) throw new Error(`${at} answered ${answer.status}: ${await answer.text()}`);
        at = new URL(location, at).href;
      }
      return new URL(at);
    },
  };
}
