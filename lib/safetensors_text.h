/*
 * safetensors_text.h - the text of a header that is to be written.
 */
#ifndef CLB_SAFETENSORS_TEXT_H
#define CLB_SAFETENSORS_TEXT_H

#include "safetensors_plan.h"

/*
 * Makes plan->head for the plan's tensors and the options' metadata, which
 * were checked before.
 * CLB_INVALID_ARGUMENT  longer than the format allows
 * CLB_OUT_OF_MEMORY
 */
clb_status clb__header_encode(clb__file_plan *plan,
                              const clb_save_options *options);

#endif
