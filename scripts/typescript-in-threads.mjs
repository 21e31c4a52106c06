// For `--import` of a worker thread that runs from the sources: what the process loads by `--import tsx` does not reach
// its threads.
import { register } from 'tsx/esm/api';

register();
