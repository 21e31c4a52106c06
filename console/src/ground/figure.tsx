/** A number of a list of numbers. */
export const Figure = ({ label, value }: { label: string; value: string }) => (
  <div className="number">
    <dt>{label}</dt>
    <dd>{value}</dd>
  </div>
);
