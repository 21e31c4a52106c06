import { type DirectiveNode, type DocumentNode, Kind, type SelectionSetNode } from 'graphql';

/** The variables that `@skip` and `@include` of a document use. */
export function conditionVariables(document: DocumentNode): string[] {
  const names = new Set<string>();
  for (const definition of document.definitions)
    if ('selectionSet' in definition) collect(definition.selectionSet, names);
  return [...names];
}

function collect({ selections }: SelectionSetNode, names: Set<string>): void {
  for (const node of selections) {
    for (const directive of node.directives ?? []) add(directive, names);
    if ('selectionSet' in node && node.selectionSet) collect(node.selectionSet, names);
  }
}

function add({ name, arguments: given = [] }: DirectiveNode, names: Set<string>): void {
  if (name.value !== 'skip' && name.value !== 'include') return;
  for (const { value } of given) if (value.kind === Kind.VARIABLE) names.add(value.name.value);
}

/** The values of these variables as a text. `null` if one is not a boolean: graphql-js then reports the error. */
export function conditionKey(names: readonly string[], variables: Readonly<Record<string, unknown>>): string | null {
  let key = '';
  for (const name of names) {
    const value = variables[name];
    if (typeof value !== 'boolean') return null;
    key += value ? '1' : '0';
  }
  return key;
}
