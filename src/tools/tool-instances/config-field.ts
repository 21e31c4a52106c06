import { type ConfigField, isSensitive } from '../tools/tool-shapes.ts';

/** A field of a tool's configuration with everything that a form needs (spec, Config field descriptor). */
export interface ConfigFieldDescriptor {
  name: string;
  displayName: string | null;
  type: string;
  description: string | null;
  placeholder: string | null;
  widget: string | null;
  required: boolean;
  default: unknown;
  options: Record<string, string>[];
  validation: Record<string, unknown>;
  widgetOptions: Record<string, unknown>;
}

/** The descriptor of a field. A form must not show what is typed into a sensitive one. */
export const descriptorOf = (field: ConfigField): ConfigFieldDescriptor => ({
  name: field.name,
  displayName: field.display_name ?? null,
  type: field.type ?? 'string',
  description: field.description ?? null,
  placeholder: field.placeholder ?? null,
  widget: field.widget ?? (isSensitive(field) ? 'password' : null),
  required: field.required ?? false,
  default: isSensitive(field) ? null : (field.default ?? null),
  options: field.options ?? [],
  validation: field.validation ?? {},
  widgetOptions: field.widget_options ?? {},
});
