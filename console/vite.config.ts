import { defineConfig } from 'vite';

const service = process.env.SERVICE_URL ?? 'http://127.0.0.1:4000';

export default defineConfig({
  // the page and its files find each other wherever a proxy puts them
  base: './',
  build: { emptyOutDir: true, manifest: 'manifest.json', modulePreload: { polyfill: false }, assetsInlineLimit: 0 },
  server: { proxy: { '/graphql': service, '/account': service, '/v1': service } },
});
