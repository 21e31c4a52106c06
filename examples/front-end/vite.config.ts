import { defineConfig } from 'vite';

// Pages and service have one origin, as behind a proxy: no CORS, and a policy that names no other host.
const service = process.env.SERVICE_URL ?? 'http://127.0.0.1:4000';
const proxy = { '/graphql': { target: service, ws: true } };

export default defineConfig({
  server: { proxy },
  preview: {
    proxy,
    headers: {
      'content-security-policy':
        "default-src 'none'; script-src 'self'; style-src 'self'; img-src data:; connect-src 'self'; " +
        "base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
    },
  },
});
