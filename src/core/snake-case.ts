/** `maxTokens` -> `max_tokens`: what a property is called by a column, and in REST. */
export const snakeCase = (property: string): string =>
  property.replaceAll(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`);
