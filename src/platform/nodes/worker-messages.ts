import type { DatabasePlace } from '../postgres/database.ts';

/** What the parent of a node tells its workers. */
export type ToWorker =
  | { kind: 'begin'; number: number; of: number; nodeId: string; database: DatabasePlace }
  | { kind: 'stop' }
  | { kind: 'running'; running: number }
  | { kind: 'collect'; id: number }
  | { kind: 'collected'; id: number; texts: string[] };

/** What a worker tells its parent. */
export type ToParent =
  | { kind: 'hello' }
  | { kind: 'ready'; base: string }
  | { kind: 'fault'; sentence: string }
  /** It is about to close the socket that all listen at. */
  | { kind: 'leaving' }
  | { kind: 'gather'; id: number }
  | { kind: 'metrics'; id: number; text: string };
