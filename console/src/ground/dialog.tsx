import { type ReactNode, useEffect, useId, useRef, useState } from 'react';
import type { CombinedError } from 'urql';
import { t } from '../texts';
import { Problem } from './problem';

/** What has the focus where nothing else has it: the content of the page, from which the next key goes on. */
const toContent = () => document.getElementById('main')?.focus({ preventScroll: true });

/** Gives the focus back, and on to the content if what had it goes away: a row, with the button that deleted it. */
function giveBack(opener: HTMLElement): void {
  if (!opener.isConnected) {
    toContent();
    return;
  }
  opener.focus();
  const watch = new MutationObserver(() => {
    if (opener.isConnected && document.activeElement === opener) return;
    watch.disconnect();
    if (!opener.isConnected && document.activeElement === document.body) toContent();
  });
  watch.observe(document.body, { childList: true, subtree: true });
}

/** A dialog of the browser: it keeps the focus, ends with Escape, and gives the focus back. */
export function Dialog({
  title,
  onClose,
  children,
  isWide = false,
}: {
  title: string;
  onClose: () => void;
  children: ReactNode;
  isWide?: boolean;
}) {
  const element = useRef<HTMLDialogElement>(null);
  const heading = useId();
  useEffect(() => {
    const dialog = element.current;
    const opener = document.activeElement;
    dialog?.showModal();
    // a dialog begins at what is to be filled in, not at the button that closes it
    dialog?.querySelector<HTMLElement>('input, select, textarea')?.focus();
    return () => {
      dialog?.close();
      if (opener instanceof HTMLElement) giveBack(opener);
    };
  }, []);
  return (
    <dialog
      ref={element}
      className={isWide ? 'wide' : ''}
      aria-labelledby={heading}
      onCancel={(event) => {
        event.preventDefault();
        onClose();
      }}
    >
      <header>
        <h2 id={heading}>{title}</h2>
        <button type="button" className="plain icon" aria-label={t.close} onClick={onClose}>
          ×
        </button>
      </header>
      {children}
    </dialog>
  );
}

/** Asks for the name of what is to go, and says what goes with it. */
export function ConfirmDialog({
  title,
  name,
  children,
  action,
  onConfirm,
  onClose,
}: {
  title: string;
  name: string;
  children?: ReactNode;
  action: string;
  onConfirm: () => Promise<{ error?: CombinedError | undefined }>;
  onClose: () => void;
}) {
  const [typed, setTyped] = useState('');
  const [error, setError] = useState<CombinedError>();
  const [isBusy, setBusy] = useState(false);
  const confirm = async () => {
    setBusy(true);
    const { error: refusal } = await onConfirm();
    setBusy(false);
    if (refusal) setError(refusal);
    else onClose();
  };
  return (
    <Dialog title={title} onClose={onClose}>
      <form
        onSubmit={(event) => {
          event.preventDefault();
          if (typed === name && !isBusy) void confirm();
        }}
      >
        {children}
        <label className="field">
          <span>{t.typeName(name)}</span>
          <input value={typed} onChange={(event) => setTyped(event.target.value)} autoComplete="off" />
        </label>
        <Problem error={error} />
        <footer>
          <button type="button" onClick={onClose}>
            {t.cancel}
          </button>
          <button type="submit" className="danger" disabled={typed !== name || isBusy}>
            {action}
          </button>
        </footer>
      </form>
    </Dialog>
  );
}
