# The service without its embedded PostgreSQL: give it DATABASE_URL. It runs as a user without rights, keeps files and
# keys in the volume /data, and needs no other place to write to (`--read-only --tmpfs /tmp`).
#
#   docker build -t platform .
#   docker run -p 4000:4000 -v platform:/data -e DATABASE_URL=postgres://… platform

# the Node of `npm run smoke`, which tries the built service on it
ARG NODE=docker.io/library/node:26-bookworm-slim

FROM ${NODE} AS build
WORKDIR /build
COPY . .
RUN npm ci && npm run release -- --without-embedded --no-tarball && mkdir /data

FROM ${NODE}
ENV NODE_ENV=production HOST=0.0.0.0 PORT=4000 DATA_DIR=/data
COPY --from=build /build/dist/release /app
COPY --from=build --chown=node:node /data /data
WORKDIR /app
USER node
VOLUME /data
EXPOSE 4000
HEALTHCHECK --interval=10s --timeout=5s --start-period=60s \
  CMD node -e 'fetch(`http://127.0.0.1:${process.env.PORT}/healthz`).then(({ ok }) => process.exit(ok ? 0 : 1))'
CMD ["node", "dist/service/main.js"]
