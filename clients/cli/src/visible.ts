/** A text of others as it may stand in a terminal: what would move its cursor or change its colours is written out. */
export const visible = (text: string): string =>
  text.replaceAll(/[\p{Cc}\p{Bidi_Control}]/gu, (character) =>
    character === '\n' || character === '\t'
      ? character
      : `\\u${character.charCodeAt(0).toString(16).padStart(4, '0')}`,
  );
