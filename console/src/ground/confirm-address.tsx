import { type ReactNode, useState } from 'react';
import type { CombinedError } from 'urql';
import { MyAddressDocument, SendConfirmationDocument } from '../generated/documents';
import { t } from '../texts';
import { useAnswer, useChange } from './answers';
import { Problem } from './problem';
import { useWhenSeen } from './while-seen';

/** Says that the address of the reader is not confirmed, until it is, and has the mail sent that confirms it. */
export function ConfirmAddress(): ReactNode {
  const { data, again } = useAnswer(MyAddressDocument, {});
  // it is confirmed in another tab
  useWhenSeen(again);
  const send = useChange(SendConfirmationDocument);
  const [sentTo, setSentTo] = useState('');
  const [error, setError] = useState<CombinedError>();
  const [isBusy, setBusy] = useState(false);
  const email = data?.me.email;
  if (!data || !email || data.me.isVerified) return null;
  const sendAgain = async () => {
    if (isBusy) return;
    setBusy(true);
    // the same words again are announced again
    setSentTo('');
    const { error: refusal } = await send({ email });
    setBusy(false);
    setError(refusal);
    setSentTo(refusal ? '' : email);
  };
  return (
    <div className="note">
      <p>
        <strong>{t.address.unconfirmed}</strong> {t.address.whyConfirm}
      </p>
      <Problem error={error} />
      {/* a button that is disabled would lose the focus */}
      <button type="button" aria-disabled={isBusy} onClick={() => void sendAgain()}>
        {t.address.sendAgain}
      </button>
      <p role="status">{sentTo && t.address.sent(sentTo)}</p>
    </div>
  );
}
