type Snake<Name extends string> = Name extends `${infer First}${infer Rest}`
  ? `${First extends Lowercase<First> ? First : `_${Lowercase<First>}`}${Snake<Rest>}`
  : Name;

/**
 * A resource as REST shows it: the fragment that its documents select, by its names there. Its version is the `ETag`.
 */
export type RestBody<Fragment> = {
  [Name in keyof Fragment & string as Name extends 'resourceVersion' ? never : Snake<Name>]: Fragment[Name];
};
