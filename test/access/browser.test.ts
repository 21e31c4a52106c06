import { describe, expect, it } from 'vitest';
import { browserOf, prefersPage } from '../../src/access/browser.ts';

const TOKEN = 'a'.repeat(43);

function browserWith(headers: Record<string, string | string[] | undefined>, isSecure = true) {
  const cookies: string[] = [];
  const browser = browserOf({ headers, isSecure, setCookie: (text) => cookies.push(text) });
  return { browser, cookies };
}

describe('the cookie of a browser', () => {
  it.each<[string | string[] | undefined, boolean, string | null]>([
    [`__Host-sso=${TOKEN}`, true, TOKEN],
    [`sso=${TOKEN}`, false, TOKEN],
    [`sso=${TOKEN}`, true, null],
    [`__Host-sso=${TOKEN}`, false, null],
    [`a=b;  __Host-sso=${TOKEN} ; c=d`, true, TOKEN],
    [['a=b', `__Host-sso=${TOKEN}`], true, TOKEN],
    [`__Host-sso=short; __Host-sso=${TOKEN}`, true, TOKEN],
    [`__Host-sso=${'a'.repeat(44)}`, true, null],
    [`__Host-sso=x${'a'.repeat(41)}!`, true, null],
    ['__Host-sso', true, null],
    ['', true, null],
    [undefined, true, null],
  ])('%j over https (%s) holds %s', (cookie, isSecure, token) => {
    expect(browserWith({ cookie }, isSecure).browser.token).toBe(token);
  });

  it('is renewed with what it holds, for a quarter of an hour', () => {
    const { browser, cookies } = browserWith({ cookie: `__Host-sso=${TOKEN}` });
    expect(browser.mark()).toBe(TOKEN);
    expect(cookies).toEqual([`__Host-sso=${TOKEN}; Path=/; HttpOnly; Max-Age=900; Secure; SameSite=None`]);
  });

  it('is new for a browser without one, and says nothing of other sites without https', () => {
    const { browser, cookies } = browserWith({}, false);
    const token = browser.mark();
    expect(token).toMatch(/^[\w-]{43}$/);
    expect(cookies).toEqual([`sso=${token}; Path=/; HttpOnly; Max-Age=900`]);
    expect(browserWith({}).browser.mark()).not.toBe(token);
  });
});

describe('a request', () => {
  it('is one of a page where a browser says so', () => {
    expect(browserWith({}).browser.isBrowser).toBe(false);
    expect(browserWith({ origin: 'null' }).browser.isBrowser).toBe(true);
    expect(browserWith({ 'sec-fetch-site': 'none' }).browser.isBrowser).toBe(true);
  });

  it.each([
    ['text/html', true],
    ['text/html,application/xhtml+xml,*/*;q=0.8', true],
    ['TEXT/HTML', true],
    ['application/json', false],
    ['text/html;q=0.5, application/json', false],
    ['text/html;q=0.9, application/json;q=0.8', true],
    ['text/html; level=1; q=0.2, application/json;q=0.1', true],
    ['text/html, application/json', false],
    ['text/html;q=0', false],
    ['text/html;q=x', false],
    ['*/*', false],
    ['', false],
  ])('that accepts %j is answered with a page: %s', (accept, expected) => {
    expect(prefersPage(accept)).toBe(expected);
    expect(browserWith({ accept }).browser.wantsPage).toBe(expected);
  });

  it('that accepts nothing in particular is not', () => {
    expect(prefersPage()).toBe(false);
    expect(browserWith({}).browser.wantsPage).toBe(false);
    expect(browserWith({ accept: ['text/html'] }).browser.wantsPage).toBe(false);
  });
});
