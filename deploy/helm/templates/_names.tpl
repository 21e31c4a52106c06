{{- define "platform.labels" -}}
app.kubernetes.io/name: platform
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end -}}

{{/* Refuses values with which keys or files would be lost, or nodes would not see each other's. */}}
{{- define "platform.check" -}}
{{- $shared := and .Values.persistence.enabled (has "ReadWriteMany" .Values.persistence.accessModes) -}}
{{- if and (not .Values.keys.existingSecret) (not .Values.persistence.enabled) -}}
{{- fail "Set keys.existingSecret or persistence.enabled, or the keys of all secrets are lost with the pod." -}}
{{- end -}}
{{- if and (not .Values.settings.S3_BUCKET) (not .Values.persistence.enabled) -}}
{{- fail "Set settings.S3_BUCKET or persistence.enabled, or files are lost with the pod." -}}
{{- end -}}
{{- $apart := and .Values.keys.existingSecret .Values.settings.S3_BUCKET -}}
{{- if and (gt (int .Values.replicas) 1) (not $shared) (not $apart) -}}
{{- fail "Several replicas need keys.existingSecret and settings.S3_BUCKET, or a volume with ReadWriteMany." -}}
{{- end -}}
{{- end -}}
