/**
 * The languages that a text can be said to be in, as ISO 639-1: those that are detected, and those whose words the
 * search knows in their forms.
 */
export const languages = [
  ...['am', 'ar', 'az', 'be', 'bg', 'bn', 'ca', 'cs', 'da', 'de', 'el', 'en', 'es', 'et', 'eu', 'fa', 'fi', 'fr'],
  ...['ga', 'gu', 'he', 'hi', 'hr', 'hu', 'hy', 'id', 'is', 'it', 'ja', 'ka', 'kn', 'ko', 'ku', 'lo', 'lt', 'lv'],
  ...['ml', 'mr', 'ms', 'ne', 'nl', 'no', 'or', 'pa', 'pl', 'pt', 'ro', 'ru', 'sk', 'sl', 'sq', 'sr', 'sv', 'ta'],
  ...['te', 'th', 'tl', 'tr', 'uk', 'ur', 'vi', 'yi', 'yo', 'zh'],
] as const;
