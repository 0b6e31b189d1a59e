// SPDX-License-Identifier: Apache-2.0
// Markdown: what stands on code and tables.
export default {
  'md.selected': ['已选中，请按复制键', 'Selected: copy it now'],
  'md.code': ['代码', 'Code'],
  'md.table': ['表格', 'Table'],
  'md.rows': ['显示全部 {n} 行', 'Show all {n} rows'],
} as const;
