/** How much of a kind the page of an account shows: more than anybody looks through. */
export const MOST_SHOWN = 200;
