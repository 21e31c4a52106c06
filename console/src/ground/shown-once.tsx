import { t } from '../texts';
import { Dialog } from './dialog';
import { CopyButton } from './problem';

/** What the service shows only once, such as a token. It is gone with the dialog. */
export function ShownOnce({
  title,
  parts,
  onClose,
}: {
  title: string;
  parts: readonly { label: string; text: string }[];
  onClose: () => void;
}) {
  return (
    <Dialog title={title} onClose={onClose}>
      <p>{t.shownOnce}</p>
      {parts.map(({ label, text }) => (
        <div className="field" key={label}>
          <span>{label}</span>
          <code>{text}</code>
          <CopyButton text={text} label={t.copyOf(label)} />
        </div>
      ))}
      <footer>
        <button type="button" className="primary" onClick={onClose}>
          {t.done}
        </button>
      </footer>
    </Dialog>
  );
}
