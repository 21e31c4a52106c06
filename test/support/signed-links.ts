/** A text with its signed links as of any moment: two made a second apart end and are signed differently. */
export const ofAnyMoment = (text: string): string => text.replaceAll(/([?&](?:expires|signature)=)[^&"\\\s]*/g, '$1…');
