/** An action of a tool, as it is described. */
type DescribedAction = Readonly<Record<string, unknown>>;

/** Whether the method of an action reads: GET, which is the default, or HEAD. */
const hasReadingMethod = ({ method }: DescribedAction): boolean =>
  ['GET', 'HEAD'].includes(typeof method === 'string' ? method.toUpperCase() : 'GET');

/** Whether an action changes nothing: as it says, or else by its method. */
export const isReadOnly = (action: DescribedAction): boolean => {
  if (action.is_destructive === true || action.is_read_only === false) return false;
  return action.is_read_only === true || hasReadingMethod(action);
};

/** Whether an action reads for certain: its method does, and it does not say that it changes something. */
export const isReading = (action: DescribedAction): boolean => isReadOnly(action) && hasReadingMethod(action);
