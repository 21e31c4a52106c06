/** The head of a counter, which OpenMetrics calls without the end of its samples. */
const COUNTER = /^# HELP (\S+) (.*)\n# TYPE \1 counter$/gm;
const EXEMPLAR = / # \{[^{}]*\} \S+ \S+$/gm;
const END = /# EOF\n$/;

/**
 * The same metrics in the text format of Prometheus. The library writes counters of one registry in one of the formats
 * only: it renames them for good.
 */
export const asPrometheus = (openMetrics: string): string =>
  openMetrics.replace(COUNTER, '# HELP $1_total $2\n# TYPE $1_total counter').replace(EXEMPLAR, '').replace(END, '');
