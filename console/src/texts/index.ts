import { t as english, type Texts } from './en';

const KEY = 'console-language';
/** The names of languages, each in itself. */
export const languages = { en: 'English', de: 'Deutsch' } as const;
export type Language = keyof typeof languages;

const isLanguage = (word: string): word is Language => Object.hasOwn(languages, word);

/** What the reader has chosen on this device; until then, the first of the browser's languages that there is. */
function chosenLanguage(): Language {
  const chosen = localStorage.getItem(KEY) ?? '';
  if (isLanguage(chosen)) return chosen;
  return navigator.languages.map((tag) => tag.slice(0, 2).toLowerCase()).find(isLanguage) ?? 'en';
}

export const language = chosenLanguage();

/** For numbers and times: the browser's own way of writing the language, if it has one. */
export const locale = navigator.languages.find((tag) => tag.toLowerCase().startsWith(language)) ?? language;

/** Keeps the choice on this device. Texts are read once: the page begins again. */
export function chooseLanguage(chosen: Language): void {
  localStorage.setItem(KEY, chosen);
  location.reload();
}

document.documentElement.lang = language;

/** All texts of the console, in the language of the reader. */
export const t: Texts = language === 'de' ? (await import('./de')).t : english;
