import SchemaBuilder, { BasePlugin, type PothosOutputFieldConfig, type SchemaTypes } from '@pothos/core';
import type { GraphQLFieldResolver } from 'graphql';
import { outcomeOf } from '../../data/activity.ts';
import { isAction } from '../../kernel/actions.ts';
import type { ResourceWord } from '../../kernel/resources.ts';
import { callerError, hasTimedOut } from '../../platform/postgres/faults.ts';
import type { Context } from '../context.ts';
import { permissionOf, type Requirement } from './access-plugin.ts';
import { type ActivityLabel, entryOf } from './activity-label.ts';

declare global {
  export namespace PothosSchemaTypes {
    export interface Plugins<Types extends SchemaTypes> {
      activity: ActivityPlugin<Types>;
    }
    export interface FieldOptions {
      /** The field's name in the audit trail; by default derived from its permission. `false`: not recorded. */
      activity?: ActivityLabel | false;
    }
  }
}

/**
 * Records each root operation of an authenticated caller, successful or not (defaults §9). A change writes its record
 * in its own transaction; reads and failures go to the recorder, which writes them in batches. Database faults become
 * the catalogue's 503.
 */
export class ActivityPlugin<Types extends SchemaTypes> extends BasePlugin<Types> {
  override onOutputFieldConfig(fieldConfig: PothosOutputFieldConfig<Types>): PothosOutputFieldConfig<Types> {
    if (!isRecorded(fieldConfig.parentType)) return fieldConfig;
    const extensions = { ...fieldConfig.extensions, activity: labelOf(fieldConfig), record: declaredOf(fieldConfig) };
    return { ...fieldConfig, extensions };
  }

  override wrapResolve(
    resolver: GraphQLFieldResolver<unknown, Types['Context'], object>,
    fieldConfig: PothosOutputFieldConfig<Types>,
  ): GraphQLFieldResolver<unknown, Types['Context'], object> {
    // a subscription is recorded when it starts, not with each event
    if (!isRecorded(fieldConfig.parentType) || fieldConfig.parentType === 'Subscription') return resolver;
    return recorded(resolver, labelOf(fieldConfig), fieldConfig.parentType === 'Mutation');
  }

  override wrapSubscribe(
    subscriber: GraphQLFieldResolver<unknown, Types['Context'], object> | undefined,
    fieldConfig: PothosOutputFieldConfig<Types>,
  ): GraphQLFieldResolver<unknown, Types['Context'], object> | undefined {
    return subscriber && recorded(subscriber, labelOf(fieldConfig));
  }
}

function recorded<ContextType>(
  resolver: GraphQLFieldResolver<unknown, ContextType, object>,
  label: ActivityLabel | null,
  isMutation = false,
): GraphQLFieldResolver<unknown, ContextType, object> {
  return async (parent, args, context, info) => {
    const { anyCaller, services } = context as unknown as Context;
    if (isMutation) anyCaller.request.rootField = info.fieldName;
    try {
      const result: unknown = await resolver(parent, args, context, info);
      const isOpen = label && !label.byResolver && !anyCaller.request.recorded;
      if (isOpen && anyCaller.principal && !services.activity.hasRecorded(result))
        services.activity.record(anyCaller, entryOf(label, anyCaller, args), {
          statusCode: anyCaller.request.successStatus,
        });
      return result;
    } catch (error) {
      // a REST request is recorded after it was answered: only then is its status known
      const shown = callerError(error);
      // the caller is only asked to try again; the log tells the operator what was too slow
      if (hasTimedOut(error)) services.onFault(error, 'the database cancelled a statement that took too long');
      if (label && anyCaller.principal && !anyCaller.request.isRest)
        services.activity.record(anyCaller, entryOf(label, anyCaller, args), outcomeOf(shown));
      throw shown;
    }
  };
}

const ROOTS = new Set(['Query', 'Mutation', 'Subscription']);
const isRecorded = (parentType: string) => ROOTS.has(parentType);

/** The label by which requests of a field are recorded here; `null` if its service records them, or nobody does. */
function labelOf<Types extends SchemaTypes>(fieldConfig: PothosOutputFieldConfig<Types>): ActivityLabel | null {
  const declared = declaredOf(fieldConfig);
  return declared?.byService ? null : declared;
}

/** The record that a success leaves; `null` for none. */
function declaredOf<Types extends SchemaTypes>(fieldConfig: PothosOutputFieldConfig<Types>): ActivityLabel | null {
  const { authorize, activity } = fieldConfig.pothosOptions as {
    authorize?: Requirement;
    activity?: ActivityLabel | false;
  };
  const { name } = fieldConfig;
  if (activity !== undefined) return activity ? { ...activity, field: name } : null;
  const permission = permissionOf(authorize);
  if (!permission) return null;
  const [resourceType, verb] = permission.split(':') as [ResourceWord, string];
  const isList = 'first' in fieldConfig.args;
  const action = verb === 'read' && isList ? 'list' : verb === 'access' ? 'read' : verb;
  if (!isAction(action))
    throw new Error(`${fieldConfig.parentType}.${name}: '${action}' is no action: give it 'activity'.`);
  return { resourceType, action, field: name };
}

SchemaBuilder.registerPlugin('activity', ActivityPlugin);
