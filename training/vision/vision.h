// <caldera/vision.h>: images, networks that classify them, and their training.
//
//   const auto data = caldera::vision::open_image_data("mnist");
//   const auto model = caldera::vision::make_image_model("lenet5", {.classes = 10, .channels = 1, ...});
//   caldera::vision::DataLoader loader(data.train, {.batch_size = 64, .shuffle = true});
//   caldera::vision::train_images(*model, loader, {.epochs = 1});
#pragma once

#include "training/vision/data/cifar.h"
#include "training/vision/data/data_loader.h"
#include "training/vision/data/folder.h"
#include "training/vision/data/idx.h"
#include "training/vision/data/image_data.h"
#include "training/vision/data/image_dataset.h"
#include "training/vision/data/image_file.h"
#include "training/vision/data/samplers.h"
#include "training/vision/data/transforms.h"
#include "training/vision/layers/batch_norm2d.h"
#include "training/vision/layers/chain.h"
#include "training/vision/layers/conv2d.h"
#include "training/vision/layers/layer_maker.h"
#include "training/vision/models/image_model.h"
#include "training/vision/models/image_weights.h"
#include "training/vision/train/image_metrics.h"
#include "training/vision/train/image_report.h"
#include "training/vision/train/image_step.h"
#include "training/vision/train/image_trainer.h"
#include "training/vision/train/train_images.h"
