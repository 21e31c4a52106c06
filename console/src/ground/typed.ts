import { useEffect, useState } from 'react';

const TYPING_MS = 250;

/** What was typed, once nobody types any more: each word would be asked for letter by letter. */
export function useTyped(text: string): string {
  const [typed, setTyped] = useState(text);
  useEffect(() => {
    const timer = setTimeout(() => setTyped(text), TYPING_MS);
    return () => clearTimeout(timer);
  }, [text]);
  return typed;
}
