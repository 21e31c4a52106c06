import { register } from 'node:module';

/*
 * The suite imports `globSync` of Node 22, which only its checks of repositories use. On Node 20 it would not even
 * load, so its own import of `fs` gets one that finds nothing.
 */
const FS = `export * from 'node:fs'; export const globSync = () => [];`;
const HOOKS = `
const FS = 'data:text/javascript,' + encodeURIComponent(${JSON.stringify(FS)});
export const resolve = (specifier, context, next) =>
  specifier === 'fs' && context.parentURL?.includes('/@modelcontextprotocol/conformance/')
    ? { url: FS, shortCircuit: true }
    : next(specifier, context);
`;
register(`data:text/javascript,${encodeURIComponent(HOOKS)}`);
