import { createHash } from 'node:crypto';
import { readdirSync, readFileSync } from 'node:fs';
import { join, relative, sep } from 'node:path';
import type { ASTNode, DocumentNode, FragmentDefinitionNode, OperationDefinitionNode } from 'graphql';
import { GraphQLError, getLocation, Kind, parse, Source } from 'graphql';

/** Mistakes in the operation documents. The message has one line for each: `file:line:column message`. */
export class CompileError extends Error {
  override readonly name = 'CompileError';
  readonly problems: readonly string[];

  constructor(problems: Iterable<string>) {
    const unique = [...new Set(problems)];
    super(`The REST operations cannot be compiled:\n${unique.join('\n')}`);
    this.problems = unique;
  }
}

/** `file:line:column message` for a node of a document read by {@link readDocuments}. */
export function problemAt(node: ASTNode | undefined, message: string): string {
  if (!node?.loc) return message;
  const { line, column } = getLocation(node.loc.source, node.loc.start);
  return `${node.loc.source.name}:${line}:${column} ${message}`;
}

/** The same for an error of graphql-js. */
export function problemOf(error: GraphQLError): string {
  const [at] = error.locations ?? [];
  return at && error.source ? `${error.source.name}:${at.line}:${at.column} ${error.message}` : error.message;
}

export interface OperationSource {
  node: OperationDefinitionNode;
  name: string;
  /** Path of the file relative to the folder that was read, separated by `/`. */
  file: string;
  /** 1-based line of the operation. */
  line: number;
  /** The `#` comment lines directly above the operation. */
  comment: string;
}

export interface RouteDocuments {
  operations: OperationSource[];
  fragments: Map<string, FragmentDefinitionNode>;
  problems: string[];
  /** SHA-256 of the names and the texts of all files, hexadecimal. */
  digest: string;
}

/** Reads every `*.graphql` below `dir`. Returns syntax errors and duplicate names as `problems`. */
export function readDocuments(dir: string): RouteDocuments {
  const found: RouteDocuments = { operations: [], fragments: new Map(), problems: [], digest: '' };
  const hash = createHash('sha256');
  const names = new Map<string, OperationSource>();
  const files = readdirSync(dir, { recursive: true, encoding: 'utf8' }).filter((file) => file.endsWith('.graphql'));
  for (const path of files.sort()) {
    const file = join(dir, path);
    const source = new Source(readFileSync(file, 'utf8'), file);
    hash.update(`${path}\0${source.body}\0`);
    try {
      for (const node of parse(source).definitions) {
        if (node.kind === Kind.FRAGMENT_DEFINITION) addFragment(found, node);
        else if (node.kind === Kind.OPERATION_DEFINITION)
          addOperation(found, names, node, source, relative(dir, file).split(sep).join('/'));
        else found.problems.push(problemAt(node, 'Only operations and fragments may stand here.'));
      }
    } catch (error) {
      if (!(error instanceof GraphQLError)) throw error;
      found.problems.push(problemOf(error));
    }
  }
  if (files.length === 0) found.problems.push(`${dir} holds no *.graphql file.`);
  found.digest = hash.digest('hex');
  return found;
}

function addFragment({ fragments, problems }: RouteDocuments, node: FragmentDefinitionNode): void {
  const other = fragments.get(node.name.value);
  if (other)
    problems.push(
      problemAt(node, `Fragment '${node.name.value}' is already defined at ${problemAt(other, '').trim()}.`),
    );
  else fragments.set(node.name.value, node);
}

function addOperation(
  { operations, problems }: RouteDocuments,
  names: Map<string, OperationSource>,
  node: OperationDefinitionNode,
  source: Source,
  file: string,
): void {
  const name = node.name?.value;
  if (!name || !node.loc) {
    problems.push(problemAt(node, 'An operation needs a name.'));
    return;
  }
  const other = names.get(name);
  if (other)
    problems.push(problemAt(node, `Operation '${name}' is already defined at ${problemAt(other.node, '').trim()}.`));
  const { line } = getLocation(source, node.loc.start);
  const operation = { node, name, file, line, comment: commentAbove(source.body, line) };
  names.set(name, operation);
  operations.push(operation);
}

function commentAbove(body: string, line: number): string {
  const lines = body.split('\n').slice(0, line - 1);
  const comment: string[] = [];
  for (let last = lines.pop()?.trim(); last?.startsWith('#'); last = lines.pop()?.trim())
    comment.unshift(last.replace(/^#+ ?/, ''));
  return comment.join('\n').trim();
}

/** The first operation of a document. @throws Error when there is none */
export function operationOf(document: DocumentNode): OperationDefinitionNode {
  const operation = document.definitions.find((definition) => definition.kind === Kind.OPERATION_DEFINITION);
  if (!operation) throw new Error('The document has no operation.');
  return operation;
}
