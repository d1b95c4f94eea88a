/* SPDX-License-Identifier: MIT */
/* libopus; its controls are one variadic function. */
#pragma once
#include <opus.h>

static inline int copus_set_bitrate(OpusEncoder *encoder, opus_int32 value) { return opus_encoder_ctl(encoder, OPUS_SET_BITRATE(value)); }
static inline int copus_set_complexity(OpusEncoder *encoder, opus_int32 value) { return opus_encoder_ctl(encoder, OPUS_SET_COMPLEXITY(value)); }
static inline int copus_set_dtx(OpusEncoder *encoder, opus_int32 value) { return opus_encoder_ctl(encoder, OPUS_SET_DTX(value)); }
static inline int copus_get_lookahead(OpusEncoder *encoder, opus_int32 *value) { return opus_encoder_ctl(encoder, OPUS_GET_LOOKAHEAD(value)); }
