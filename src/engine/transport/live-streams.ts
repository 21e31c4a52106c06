import type { Context } from '../../graphql/context.ts';
import type { LiveStream } from '../live/live-stream.ts';

/** The streams of started subscriptions by their contexts, for transports that send the frames themselves. */
export const liveStreams = new WeakMap<Context, LiveStream>();
