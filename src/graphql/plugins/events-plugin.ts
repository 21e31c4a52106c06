import SchemaBuilder, { BasePlugin, type PothosOutputFieldConfig, type SchemaTypes } from '@pothos/core';
import type { EventType } from '../../kernel/resources.ts';

declare global {
  export namespace PothosSchemaTypes {
    export interface Plugins<Types extends SchemaTypes> {
      events: EventsPlugin<Types>;
    }
    export interface FieldOptions {
      /**
       * The events that every success of a mutation adds to the outbox, unless it changes nothing. Default: none. Not
       * `notification.created`: the table of rules decides who is notified of an event.
       */
      emits?: readonly EventType[];
      /** The events that some successes add: they depend on the input, or on what else the change affects. */
      mayEmit?: readonly EventType[];
    }
  }
}

/** The events of a mutation; stored in `extensions.events` of the field. */
export interface DeclaredEvents {
  /** Events of every success. */
  always: readonly EventType[];
  /** Events of some successes. */
  sometimes: readonly EventType[];
}

/** Keeps which events a mutation emits. The suite `mutations-emit` runs every mutation and compares. */
export class EventsPlugin<Types extends SchemaTypes> extends BasePlugin<Types> {
  override onOutputFieldConfig(fieldConfig: PothosOutputFieldConfig<Types>): PothosOutputFieldConfig<Types> {
    const { name, parentType, pothosOptions } = fieldConfig;
    const { emits = [], mayEmit = [] } = pothosOptions as {
      emits?: readonly EventType[];
      mayEmit?: readonly EventType[];
    };
    const types = [...emits, ...mayEmit];
    if (parentType !== 'Mutation') {
      if (types.length > 0) throw new Error(`${parentType}.${name} is no mutation: it emits no events.`);
      return fieldConfig;
    }
    if (new Set(types).size < types.length) throw new Error(`${parentType}.${name} declares an event twice.`);
    const events: DeclaredEvents = { always: emits, sometimes: mayEmit };
    return { ...fieldConfig, extensions: { ...fieldConfig.extensions, events } };
  }
}

SchemaBuilder.registerPlugin('events', EventsPlugin);
