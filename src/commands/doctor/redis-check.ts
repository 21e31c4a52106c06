import type { Config } from '../../config.ts';
import { createLogger } from '../../platform/logger.ts';
import { RedisLink } from '../../platform/redis/redis-link.ts';
import { type Check, fail, ok } from './finding.ts';

/** Redis, if there is one. Without it the service runs, so what fails here is no reason not to start. */
export const redisChecks = ({ redisUrl, appSecret }: Pick<Config, 'redisUrl' | 'appSecret'>): Check[] => {
  if (!redisUrl) return [];
  const check: Check = {
    name: 'redis',
    remedy:
      'See that REDIS_URL leads to a Redis 6 or newer, with the right password. Until then each node counts alone.',
    async run() {
      const secret = Buffer.from(appSecret ?? 'doctor');
      const logger = createLogger({ logLevel: 'silent' });
      const link = await RedisLink.open({ url: redisUrl, secret, logger });
      const { status, reason } = await link.state();
      await link.close();
      return [status === 'ok' ? ok('answers') : fail(`Redis does not answer (${reason}).`, this.remedy)];
    },
  };
  return [check];
};
