import { readFileSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { expect } from 'vitest';
import { projectRoot } from '../../src/paths.ts';

const shipped = (name: string) => readFileSync(path.join(projectRoot, 'deploy', 'proxy', name), 'utf8');

/** Replaces a part of a file, which must be there: what is tried is what is shipped. */
function replaced(text: string, part: string | RegExp, by: string): string {
  expect(text).toMatch(part);
  return text.replace(part, by);
}

/** A program in the foreground, and the file that it reads. */
export interface ReverseProxy {
  program: string;
  /** Writes its configuration to the folder. */
  command(folder: string, port: number, upstreams: readonly string[]): { args: string[]; env?: Record<string, string> };
}

export const nginx: ReverseProxy = {
  program: '/usr/sbin/nginx',
  command: (folder, port, upstreams) => {
    const servers = upstreams.map((upstream) => `server ${upstream} $1;`).join(' ');
    let site = replaced(shipped('nginx.conf'), /server 127\.0\.0\.1:4000 (.*);/, servers);
    site = replaced(site, 'listen 443 ssl;', `listen 127.0.0.1:${port};`);
    site = replaced(site, /\tssl_certificate .*\n\tssl_certificate_key .*\n/, '');
    writeFileSync(path.join(folder, 'site.conf'), site);
    const places = ['client_body', 'proxy', 'fastcgi', 'uwsgi', 'scgi'].map((name) => `${name}_temp_path ${name};`);
    const main = `daemon off; pid nginx.pid; error_log stderr; events {}
      http { access_log off; ${places.join(' ')} include site.conf; }`;
    writeFileSync(path.join(folder, 'nginx.conf'), main);
    return { args: ['-p', folder, '-c', path.join(folder, 'nginx.conf')] };
  },
};

export const caddy: ReverseProxy = {
  program: '/usr/bin/caddy',
  command: (folder, port, upstreams) => {
    // no endpoint of administration: several may run on one machine
    writeFileSync(path.join(folder, 'Caddyfile'), `{\n\tadmin off\n}\n${shipped('Caddyfile')}`);
    return {
      args: ['run', '--adapter', 'caddyfile', '--config', path.join(folder, 'Caddyfile')],
      env: { SITE: `http://127.0.0.1:${port}`, UPSTREAMS: upstreams.join(' '), HOME: folder },
    };
  },
};
