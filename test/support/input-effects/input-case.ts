import type { TestApp } from '../app.ts';
import type { World } from '../world.ts';
import type { Overrides } from './input-values.ts';

type Json = Record<string, unknown>;

/** Where the inputs are tried. */
export interface Lab {
  app: TestApp;
  world: World;
  /** Closes something when all tests have ended. */
  closeLater: (server: { close(): Promise<unknown> }) => void;
}

/** Who sends what. */
export interface Call {
  /** Arguments, in place of the samples. Those of `input` are added to its other fields. */
  given?: Json;
  /** An access token; `null` for nobody. Default: the owner of the world. */
  token?: string | null;
}

/** What the types and the names do not tell about the input of a mutation, by the path of the field: `input.role`. */
export interface InputCase {
  /** Makes what a call needs to succeed, anew for each call; without it a mutation `update…` changes one resource. */
  prepare?: (lab: Lab) => Promise<Call>;
  /** Values with which the call must be refused. */
  demands?: Readonly<Record<string, unknown>>;
  /** What is given in place of the samples: one call for each, where the fields exclude one another. */
  variants?: (lab: Lab) => readonly Overrides[] | Promise<readonly Overrides[]>;
  /** Where the value is read: a path in the answer, or a check of the answer. */
  readAs?: Readonly<Record<string, string | ((read: unknown, given: unknown) => boolean)>>;
  /** Shows the effect of a field that no answer shows. @throws what makes a test fail if there is none */
  effects?: Readonly<Record<string, (lab: Lab) => Promise<void>>>;
  /** Fields without an effect that can be read, and why. */
  without?: Readonly<Record<string, string>>;
  /** For mutations `update…`: fields that `null` cannot clear alone, and why. */
  notCleared?: Readonly<Record<string, string>>;
}
