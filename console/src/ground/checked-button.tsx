import type { ReactNode } from 'react';

interface CheckedButtonProps {
  disabled: boolean;
  onClick: () => void;
  children: ReactNode;
}

/** A second button of a form, which is pressed only if all fields are filled in: trying out what the first one does. */
export function CheckedButton({ disabled, onClick, children }: CheckedButtonProps) {
  return (
    <button
      type="button"
      disabled={disabled}
      onClick={(event) => {
        if (event.currentTarget.form?.reportValidity()) onClick();
      }}
    >
      {children}
    </button>
  );
}
