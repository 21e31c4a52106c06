/** An element as the library reads it from the signed bytes: children by name, `$` attributes, `_` text. */
export interface XmlElement {
  $?: Record<string, string>;
  _?: string;
  [name: string]: unknown;
}

export const isElement = (value: unknown): value is XmlElement => typeof value === 'object' && value !== null;

/** The children of a name; none of a missing element. */
export const childrenOf = (element: XmlElement | undefined, name: string): XmlElement[] => {
  const found = element && Object.hasOwn(element, name) ? element[name] : undefined;
  return Array.isArray(found) ? found.map((item: unknown) => (isElement(item) ? item : { _: String(item) })) : [];
};

/** The child of a name, if there is exactly one. */
export const only = (element: XmlElement | undefined, name: string): XmlElement | undefined => {
  const children = childrenOf(element, name);
  return children.length === 1 ? children[0] : undefined;
};

export const attribute = (element: XmlElement | undefined, name: string): string | undefined =>
  element?.$ && Object.hasOwn(element.$, name) ? element.$[name] : undefined;

const TIME = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d{1,9})?Z$/;

/** A time of a message in milliseconds; `null` for a text that is none. */
export function timestampOf(text: string): number | null {
  const time = TIME.test(text) ? Date.parse(text.replace(/(\.\d{3})\d+Z$/, '$1Z')) : Number.NaN;
  return Number.isNaN(time) ? null : time;
}
